; Memory follows from placement: whole, a share of it, or a share and a unit
;
; Proof padding
; Rounding up costs less than one element per device.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const s Int)
(declare-const N Int)
(declare-const c Int)
(declare-const u Int)
(assert (and (>= s 0) (>= N 1) (<= 0 u) (<= u s)))
(assert (and (< (* (- c 1) N) s) (<= s (* c N))))
(assert (not (and (<= s (* N c)) (< (* N c) (+ s N)))))
(check-sat)
