; Clipping parts and adding them is not clipping the sum
;
; Proof complete_is_right
; Clipping what equals the single-device gradient gives what the single device has.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(define-fun norm ((g Real)) Real (ite (>= g 0.0) g (- g)))
(define-fun clipped ((g Real)) Real (ite (<= (norm g) 1.0) g (/ g (norm g))))
(declare-const g Real)
(declare-const h Real)
(assert (= g h))
(assert (distinct (clipped g) (clipped h)))
(check-sat)
