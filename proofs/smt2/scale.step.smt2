; A scale multiplies every coefficient, and commutes with reductions
;
; Proof step
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
(assert (= (scaled n) (* s (sum n))))
(assert (distinct (scaled (+ n 1)) (* s (sum (+ n 1)))))
(check-sat)
