; A mean of means is the mean exactly when all shares have as many tokens
;
; Proof even_counts_step
; If all counts are one number q, the total over n devices is n * q.
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
(declare-const q Int)
(declare-const n Int)
(assert (and (>= n 0) (= (t n) q)))
(assert (= (total (+ n 1)) (+ (total n) (t n))))
(assert (= (total n) (* n q)))
(assert (distinct (total (+ n 1)) (* (+ n 1) q)))
(check-sat)
