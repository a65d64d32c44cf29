; No side condition of composition can be dropped
;
; Witness reduced_inside_and_outside
; Inside the loop the shares 1 and 0 become copies of 1; the sum outside counts them twice.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const x Real)
(declare-const y Real)
(define-fun sum ((a Real) (b Real)) Real (+ a b))
(define-fun mean ((a Real) (b Real)) Real (/ (+ a b) 2.0))
(assert (= x (sum 1.0 0.0)))
(assert (= y (sum x x)))
(assert (distinct y 1.0))
(check-sat)
