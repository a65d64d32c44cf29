; Wrong factors of two axes may cancel, at exactly the sizes where they are equal
;
; Witness wrong
; A = 2, B = 3.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const A Int)
(declare-const B Int)
(declare-const f Real)
(assert (and (>= A 1) (>= B 1)))
(assert (= (* f (to_real B)) (to_real A)))
(assert (and (= A 2) (= B 3)))
(assert (distinct f 1.0))
(check-sat)
