; Memory follows from placement: whole, a share of it, or a share and a unit
;
; Proof dividing
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const s Int)
(declare-const N Int)
(declare-const c Int)
(declare-const u Int)
(assert (and (>= s 0) (>= N 1) (<= 0 u) (<= u s)))
(assert (and (< (* (- c 1) N) s) (<= s (* c N))))
(declare-const k Int)
(assert (= s (* N k)))
(assert (not (and (= (* N c) s) (= (* N (- (+ c u) u)) s))))
(check-sat)
