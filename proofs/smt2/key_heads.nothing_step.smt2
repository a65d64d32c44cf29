; Each device's share of the gradient of key heads is all there is of its own heads, and nothing of others
;
; Proof nothing_step
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
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
(assert (= (at n) (owner (reads n))))
(assert (= (other n) 0.0))
(assert (distinct (other (+ n 1)) 0.0))
(check-sat)
