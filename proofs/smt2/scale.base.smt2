; A scale multiplies every coefficient, and commutes with reductions
;
; Proof base
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
(assert (distinct (scaled 0) (* s (sum 0))))
(check-sat)
