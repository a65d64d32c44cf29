; Cutting a shard again gives every element exactly one pair of owners
;
; Witness order_matters
; One dimension of 4 elements over A = B = 2. With a outside, element 1 belongs to (xa, xb) = (0, 1); with b outside, to
; xb = 0 and xa = 1.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
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
(declare-const xb Int)
(declare-const outer_b Int)
(declare-const inner_a Int)
(assert (and (= s 4) (= ca 2) (= e 1) (= xa 0) (= xb 1)))
(assert (and (= e (+ (* 2 xa) xb)) (= e (+ (* 2 outer_b) inner_a)) (<= 0 inner_a) (<= inner_a 1)))
(assert (distinct xa inner_a))
(check-sat)
