; Optimizers that use the norm of a tensor, or a scale per block, may not be applied to parts of it
;
; Witness norm
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const whole Real)
(declare-const part Real)
(define-fun norm_of ((n Real) (a Real) (b Real)) Bool (and (>= n 0.0) (= (* n n) (+ (* a a) (* b b)))))
(define-fun larger ((a Real) (b Real)) Real (ite (>= a b) a b))
(assert (and (= whole 5.0) (= part 3.0)))
(assert (and (norm_of whole 3.0 4.0) (norm_of part 3.0 0.0)))
(assert (distinct (/ 3.0 whole) (/ 3.0 part)))
(check-sat)
