; An operation on the running buffer is harmless exactly when doing it again changes nothing
;
; Witness summing_in_the_loop
; N = 2, M = 2, from shares with totals 1 and 1: after the loop 2 * (1) + 1 = 3, where one device has 2. The first turn
; leaves copies of 1 on both devices; the second adds the fresh shares 1 and 0 and sums over both.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
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
(declare-const first Real)
(declare-const second Real)
(assert (= first (+ 1.0 0.0)))
(assert (= second (+ (+ first 1.0) (+ first 0.0))))
(assert (and (= second 3.0) (distinct second 2.0)))
(check-sat)
