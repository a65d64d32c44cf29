; A product of axes is one axis, numbered row by row
;
; Proof step
; Hence one row more: from flat(x*B) = nested(x) follows flat((x+1)*B) = nested(x+1). The next row begins at row + B.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun h (Int) Real)
(declare-fun flat (Int) Real)
(declare-fun line (Int) Real)
(declare-fun nested (Int) Real)
(declare-const A Int)
(declare-const B Int)
(declare-const x Int)
(declare-const row Int)
(declare-const j Int)
(assert (and (>= A 1) (>= B 1) (>= x 0) (>= j 0) (= row (* x B))))
(assert (= (line 0) 0.0))
(assert (= (line (+ j 1)) (+ (line j) (h (+ row j)))))
(assert (= (flat (+ row j 1)) (+ (flat (+ row j)) (h (+ row j)))))
(assert (= (nested (+ x 1)) (+ (nested x) (line B))))
(assert (= (flat (* x B)) (nested x)))
(assert (= (flat (+ row B)) (+ (flat row) (line B))))
(assert (distinct (flat (* (+ x 1) B)) (nested (+ x 1))))
(check-sat)
