; Optimizers that use the norm of a tensor, or a scale per block, may not be applied to parts of it
;
; Witness block
; The first entry, 1, in units of its block: 1/4 in the whole block, 1 in the part.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const whole Real)
(declare-const part Real)
(define-fun norm_of ((n Real) (a Real) (b Real)) Bool (and (>= n 0.0) (= (* n n) (+ (* a a) (* b b)))))
(define-fun larger ((a Real) (b Real)) Real (ite (>= a b) a b))
(assert (and (= whole (larger 1.0 4.0)) (= part 1.0)))
(assert (distinct (/ 1.0 whole) (/ 1.0 part)))
(check-sat)
