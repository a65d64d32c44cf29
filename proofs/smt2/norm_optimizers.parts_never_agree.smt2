; Optimizers that use the norm of a tensor, or a scale per block, may not be applied to parts of it
;
; Proof parts_never_agree
; The norm of a part is the norm of the whole only if the rest is zero.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const whole Real)
(declare-const part Real)
(define-fun norm_of ((n Real) (a Real) (b Real)) Bool (and (>= n 0.0) (= (* n n) (+ (* a a) (* b b)))))
(define-fun larger ((a Real) (b Real)) Real (ite (>= a b) a b))
(declare-const a Real)
(declare-const b Real)
(assert (and (norm_of whole a b) (norm_of part a 0.0)))
(assert (= whole part))
(assert (distinct b 0.0))
(check-sat)
