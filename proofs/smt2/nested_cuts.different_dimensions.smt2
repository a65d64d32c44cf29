; Cutting a shard again gives every element exactly one pair of owners
;
; Proof different_dimensions
; Row and column of an element are cut apart: the pair of owners does not depend on which cut comes first.
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
(declare-fun row_owner (Int) Int)
(declare-fun column_owner (Int) Int)
(declare-const row Int)
(declare-const column Int)
(declare-const x Int)
(declare-const y Int)
(define-fun rows_first () Bool (and (= x (row_owner row)) (= y (column_owner column))))
(define-fun columns_first () Bool (and (= y (column_owner column)) (= x (row_owner row))))
(assert (distinct rows_first columns_first))
(check-sat)
