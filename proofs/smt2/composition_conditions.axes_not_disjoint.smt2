; No side condition of composition can be dropped
;
; Witness axes_not_disjoint
; Both specs sum the gradient over the same axis. Each alone makes 1 of the shares 1 and 0 of an item; together they make 2.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const x Real)
(declare-const y Real)
(define-fun sum ((a Real) (b Real)) Real (+ a b))
(define-fun mean ((a Real) (b Real)) Real (/ (+ a b) 2.0))
(assert (= x (sum 1.0 0.0)))
(assert (= y (sum x x)))
(assert (and (= x 1.0) (= y 2.0)))
(check-sat)
