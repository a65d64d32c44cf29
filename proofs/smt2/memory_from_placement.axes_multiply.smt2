; Memory follows from placement: whole, a share of it, or a share and a unit
;
; Proof axes_multiply
; A matrix of A*r rows and B*q columns, cut both ways: the part times A*B is the whole.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const s Int)
(declare-const N Int)
(declare-const c Int)
(declare-const u Int)
(assert (and (>= s 0) (>= N 1) (<= 0 u) (<= u s)))
(assert (and (< (* (- c 1) N) s) (<= s (* c N))))
(declare-const A Int)
(declare-const B Int)
(declare-const r Int)
(declare-const q Int)
(assert (and (>= A 1) (>= B 1) (>= r 0) (>= q 0)))
(assert (distinct (* A B (* r q)) (* (* A r) (* B q))))
(check-sat)
