; A copy that is added into shares is counted once for each device
;
; Witness twice_on_two_devices
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
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
(assert (and (= n 1) (= f 1.0) (= b 1.0) (= (plain 1) (y 0))))
(assert (= (biased 1) (+ (y 0) 1.0)))
(assert (= (biased 2) (+ (plain 2) 2.0)))
(check-sat)
