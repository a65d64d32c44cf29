; A mean of means is the mean exactly when all shares have as many tokens
;
; Proof right_is_even
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
(assert local)
(assert (= (* f (to_real T)) 1.0))
(assert (distinct (* (to_real N) (to_real (t x))) (to_real T)))
(check-sat)
