; What comes back through a boundary is right in one way only
;
; Witness shares_cut_on_two_devices
; N = 2: of piece 0, device 0 has share 0 and nothing of share 1.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-fun arrives (Int Int Int) Real)
(declare-fun added (Int Int Int) Real)
(declare-const N Int)
(declare-const n Int)
(declare-const v Int)
(declare-const w Int)
(assert (and (<= 0 v) (< v N) (<= 0 w) (< w N) (<= 0 n)))
(assert (and (= (added 0 v w) 0.0) (= (added (+ n 1) v w) (+ (added n v w) (arrives n v w)))))
(assert (and (= N 2) (= w 0) (= v 1)))
(assert (and (= (arrives 0 0 0) 1.0) (= (arrives 0 1 0) 0.0)))
(assert (distinct (arrives w v w) 1.0))
(check-sat)
