; An operation on the running buffer is harmless exactly when doing it again changes nothing
;
; Proof averaging_twice
; What one average leaves, a copy of the value v, another one leaves alone: N * v / N = v.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-sort Value 0)
(declare-fun plus (Value Value) Value)
(declare-fun A (Value) Value)
(declare-fun fresh (Int) Value)
(declare-fun buffer (Int) Value)
(declare-fun sum (Int) Value)
(declare-const zero Value)
(declare-const m Int)
(assert (>= m 0))
(define-fun additive ((u Value) (v Value)) Bool (= (A (plus u v)) (plus (A u) (A v))))
(assert (= (A zero) zero))
(assert (additive (buffer m) (fresh (+ m 1))))
(assert (additive (sum m) (fresh (+ m 1))))
(assert (and (= (buffer 0) zero) (= (sum 0) zero)))
(assert (= (buffer (+ m 1)) (A (plus (buffer m) (fresh (+ m 1))))))
(assert (= (sum (+ m 1)) (plus (sum m) (fresh (+ m 1)))))
(declare-const N Int)
(declare-const v Real)
(assert (>= N 1))
(assert (distinct (/ (* (to_real N) v) (to_real N)) v))
(check-sat)
