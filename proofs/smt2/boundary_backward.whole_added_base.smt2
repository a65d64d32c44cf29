; What comes back through a boundary is right in one way only
;
; Proof whole_added_base
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun arrives (Int Int Int) Real)
(declare-fun added (Int Int Int) Real)
(declare-const N Int)
(declare-const n Int)
(declare-const v Int)
(declare-const w Int)
(assert (and (<= 0 v) (< v N) (<= 0 w) (< w N) (<= 0 n)))
(assert (and (= (added 0 v w) 0.0) (= (added (+ n 1) v w) (+ (added n v w) (arrives n v w)))))
(assert (distinct (added 0 v w) (to_real 0)))
(check-sat)
