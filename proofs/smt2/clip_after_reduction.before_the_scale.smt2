; Clipping parts and adding them is not clipping the sum
;
; Witness before_the_scale
; Twice the gradient 1/2 is clipped to 1; clipped before halving it is 1/2 still, but the gradient 2 gives 1/2 where 1 is right.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(define-fun norm ((g Real)) Real (ite (>= g 0.0) g (- g)))
(define-fun clipped ((g Real)) Real (ite (<= (norm g) 1.0) g (/ g (norm g))))
(declare-const g Real)
(declare-const h Real)
(assert (and (= g 2.0) (= h 4.0)))
(assert (distinct (/ (clipped h) 2.0) (clipped g)))
(check-sat)
