; A mean of means is the mean exactly when all shares have as many tokens
;
; Witness counts_1_and_2
; N = 2 with counts 1 and 2: the factors are 1/2 and 1/4, where one device has 1/3 for all.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-fun t (Int) Int)
(declare-fun total (Int) Int)
(declare-const N Int)
(declare-const T Int)
(declare-const x Int)
(declare-const f Real)
(assert (and (>= N 1) (<= 0 x) (< x N) (>= (t x) 1) (>= T N)))
(define-fun local () Bool (= (* f (* (to_real N) (to_real (t x)))) 1.0))
(assert (and (= N 2) (= (t 0) 1) (= (t 1) 2) (= T 3) (= x 0) (= f (/ 1.0 2.0))))
(assert local)
(assert (distinct f (/ 1.0 3.0)))
(assert (distinct (/ 1.0 (* 2.0 (to_real (t 0)))) (/ 1.0 (* 2.0 (to_real (t 1))))))
(check-sat)
