; Wrong factors of two axes may cancel, at exactly the sizes where they are equal
;
; Proof unequal
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const A Int)
(declare-const B Int)
(declare-const f Real)
(assert (and (>= A 1) (>= B 1)))
(assert (= (* f (to_real B)) (to_real A)))
(assert (distinct A B))
(assert (= f 1.0))
(check-sat)
