; Clipping parts and adding them is not clipping the sum
;
; Witness before_the_sum
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(define-fun norm ((g Real)) Real (ite (>= g 0.0) g (- g)))
(define-fun clipped ((g Real)) Real (ite (<= (norm g) 1.0) g (/ g (norm g))))
(declare-const g Real)
(declare-const h Real)
(assert (and (= g 3.0) (= h (- 2.0))))
(assert (distinct (+ (clipped g) (clipped h)) (clipped (+ g h))))
(check-sat)
