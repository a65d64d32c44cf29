; Neither condition implies the other
;
; Witness right_gradient_and_drift
; The gradient is right on both, but only a applies it and b is never told (SC04).
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const fed_a Real)
(declare-const fed_b Real)
(declare-const new_a Real)
(declare-const new_b Real)
(define-fun GI () Bool (and (= fed_a 4.0) (= fed_b 4.0)))
(define-fun equal () Bool (= new_a new_b))
(define-fun delivered () Bool (and (= new_a (- 10.0 fed_a)) (= new_b (- 10.0 fed_b))))
(assert (and GI (= new_a (- 10.0 fed_a)) (= new_b 10.0)))
(assert (and (not equal) (not delivered) (= new_a 6.0)))
(check-sat)
