; A scale multiplies every coefficient, and commutes with reductions
;
; Proof only_one_is_right
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun k (Int) Real)
(declare-fun sum (Int) Real)
(declare-fun scaled (Int) Real)
(declare-const s Real)
(declare-const n Int)
(assert (>= n 0))
(assert (and (= (sum 0) 0.0) (= (scaled 0) 0.0)))
(assert (= (sum (+ n 1)) (+ (sum n) (k n))))
(assert (= (scaled (+ n 1)) (+ (scaled n) (* s (k n)))))
(declare-const N Int)
(assert (= (scaled N) (* s (sum N))))
(assert (= (sum N) 1.0))
(assert (distinct (= (scaled N) 1.0) (= s 1.0)))
(check-sat)
