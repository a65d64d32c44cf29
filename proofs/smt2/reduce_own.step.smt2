; Reducing shards adds different elements: no value at all from two devices on
;
; Proof step
; For that gradient, the sum over n devices is 1 where n > 1 and 0 where not (at n = 0 by definition).
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
(assert (= (g n) (ite (= n 1) 1.0 0.0)))
(assert (= (sum n) (ite (> n 1) 1.0 0.0)))
(assert (distinct (sum (+ n 1)) (ite (> (+ n 1) 1) 1.0 0.0)))
(check-sat)
