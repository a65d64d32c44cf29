; Cutting a shard again gives every element exactly one pair of owners
;
; Proof part_is_not_empty
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const s Int)
(declare-const ca Int)
(declare-const xa Int)
(declare-const e Int)
(declare-const start Int)
(declare-const l Int)
(assert (and (>= ca 1) (<= 0 e) (< e s) (= start (* xa ca))))
(assert (and (<= start e) (< e (+ start ca))))
(assert (= l (ite (<= ca (- s start)) ca (- s start))))
(assert (< l 1))
(check-sat)
