; What comes back through a boundary is right in one way only
;
; Proof shares_cut
; Cut without adding up, device w holds arrives(w, v, w): no factor s makes that 1 for two shares of one piece.
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
(declare-const u Int)
(declare-const s Real)
(assert (and (<= 0 u) (< u N) (distinct u v)))
(assert (forall ((x Int) (y Int)) (= (arrives x y w) (ite (= x y) 1.0 0.0))))
(assert (and (= (* s (arrives w v w)) 1.0) (= (* s (arrives w u w)) 1.0)))
(check-sat)
