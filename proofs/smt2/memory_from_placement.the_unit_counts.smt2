; Memory follows from placement: whole, a share of it, or a share and a unit
;
; Witness the_unit_counts
; s = 8, N = 8 and a unit of 1: S* takes 2, not 1, so it saves a factor 4, not 8.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const s Int)
(declare-const N Int)
(declare-const c Int)
(declare-const u Int)
(assert (and (>= s 0) (>= N 1) (<= 0 u) (<= u s)))
(assert (and (< (* (- c 1) N) s) (<= s (* c N))))
(assert (and (= s 8) (= N 8) (= c 1) (= u 1)))
(assert (= s (* 4 (+ c u))))
(check-sat)
