; Reducing shards adds different elements: no value at all from two devices on
;
; Proof no_factor
; So for N >= 2 it is 1, while every multiple of g(0) is 0.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun g (Int) Real)
(declare-fun sum (Int) Real)
(declare-const n Int)
(assert (>= n 0))
(assert (= (sum 0) 0.0))
(assert (= (sum 1) (+ (sum 0) (g 0))))
(assert (= (sum (+ n 1)) (+ (sum n) (g n))))
(declare-const N Int)
(declare-const s Real)
(assert (>= N 2))
(assert (= (g 0) 0.0))
(assert (= (sum N) (ite (> N 1) 1.0 0.0)))
(assert (= (sum N) (* s (g 0))))
(check-sat)
