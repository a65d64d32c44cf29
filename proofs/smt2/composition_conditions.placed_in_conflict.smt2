; No side condition of composition can be dropped
;
; Witness placed_in_conflict
; One spec puts element 0 on device 0, the other on device 1; each is a partition. What both say is held nowhere.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const x Real)
(declare-const y Real)
(define-fun sum ((a Real) (b Real)) Real (+ a b))
(define-fun mean ((a Real) (b Real)) Real (/ (+ a b) 2.0))
(declare-datatypes ((Device 0)) (((d0) (d1))))
(define-fun first ((d Device)) Bool (= d d0))
(define-fun second ((d Device)) Bool (= d d1))
(assert (and (or (first d0) (first d1)) (or (second d0) (second d1))))
(assert (and (not (and (first d0) (second d0))) (not (and (first d1) (second d1)))))
(check-sat)
