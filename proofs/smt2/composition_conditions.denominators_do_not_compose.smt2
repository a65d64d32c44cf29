; No side condition of composition can be dropped
;
; Witness denominators_do_not_compose
; One spec divides the loss by the tokens of the axis, the other averages over the axis: each item has 1/2 * 1/2 where 1/2
; is right.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const x Real)
(declare-const y Real)
(define-fun sum ((a Real) (b Real)) Real (+ a b))
(define-fun mean ((a Real) (b Real)) Real (/ (+ a b) 2.0))
(assert (= x (/ 1.0 2.0)))
(assert (= y (mean x 0.0)))
(assert (distinct y (/ 1.0 2.0)))
(check-sat)
