; A copy that is added into shares is counted once for each device
;
; Proof right_when_divided
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun y (Int) Real)
(declare-fun plain (Int) Real)
(declare-fun biased (Int) Real)
(declare-const b Real)
(declare-const f Real)
(declare-const n Int)
(assert (>= n 0))
(assert (and (= (plain 0) 0.0) (= (biased 0) 0.0)))
(assert (= (plain (+ n 1)) (+ (plain n) (y n))))
(assert (= (biased (+ n 1)) (+ (biased n) (+ (y n) (* f b)))))
(declare-const N Int)
(assert (>= N 1))
(assert (= (* (to_real N) f) 1.0))
(assert (distinct (* (* (to_real N) f) b) b))
(check-sat)
