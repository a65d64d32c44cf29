; Reducing shards adds different elements: no value at all from two devices on
;
; Proof one_device
; At N = 1 nothing is mixed.
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
(assert (distinct (sum 1) (g 0)))
(check-sat)
