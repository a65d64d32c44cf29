; Each device's share of the gradient of key heads is all there is of its own heads, and nothing of others
;
; Witness one_key_head_for_two_devices
; Two query heads that read one key head, on two devices: each has a share of it, and neither is all.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-fun at (Int) Int)
(declare-fun reads (Int) Int)
(declare-fun owner (Int) Int)
(declare-fun c (Int) Real)
(declare-fun whole (Int) Real)
(declare-fun own (Int) Real)
(declare-fun other (Int) Real)
(declare-const G Int)
(declare-const R Int)
(declare-const n Int)
(declare-const k Int)
(declare-const v Int)
(declare-const w Int)
(assert (and (>= G 1) (>= R 1) (>= n 0) (>= k 0)))
(assert (and (= (owner k) w) (distinct v w)))
(assert (and (= (whole 0) 0.0) (= (own 0) 0.0) (= (other 0) 0.0)))
(assert (= (whole (+ n 1)) (+ (whole n) (ite (= (reads n) k) (c n) 0.0))))
(assert (= (own (+ n 1)) (+ (own n) (ite (and (= (reads n) k) (= (at n) w)) (c n) 0.0))))
(assert (= (other (+ n 1)) (+ (other n) (ite (and (= (reads n) k) (= (at n) v)) (c n) 0.0))))
(assert (and (= n 1) (= k 0) (= (reads 0) 0) (= (reads 1) 0) (= (at 0) w) (= (at 1) v)))
(assert (= (whole 1) (+ (whole 0) (c 0))))
(assert (= (own 1) (+ (own 0) (c 0))))
(assert (= (other 1) (other 0)))
(assert (and (= (c 0) 1.0) (= (c 1) 1.0)))
(assert (and (= (own 2) 1.0) (= (other 2) 1.0) (= (whole 2) 2.0)))
(check-sat)
