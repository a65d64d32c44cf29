; A product of axes is one axis, numbered row by row
;
; Proof one_pair
; Two pairs of coordinates with one index are the same pair. Written with the difference d of the rows: d * B is the
; difference of two numbers below B.
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
(declare-const d Int)
(declare-const k Int)
(assert (and (<= 0 j) (< j B) (<= 0 k) (< k B) (= d (- x y))))
(assert (= (+ (* d B) j) k))
(assert (or (>= d 1) (<= d (- 1)) (distinct j k)))
(check-sat)
