; A product of axes is one axis, numbered row by row
;
; Proof share_of_both
; A share along the product is a share along both factors: the indices agree exactly where both coordinates do.
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
(declare-const y Int)
(declare-const k Int)
(assert (and (<= 0 j) (< j B) (<= 0 k) (< k B)))
(assert (=> (= (+ (* (- x y) B) j) k) (and (= x y) (= j k))))
(assert (distinct
  (ite (= (+ (* x B) j) (+ (* y B) k)) 1.0 0.0)
  (* (ite (= x y) 1.0 0.0) (ite (= j k) 1.0 0.0))))
(check-sat)
