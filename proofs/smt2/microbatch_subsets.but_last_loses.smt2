; Loops over parts of the micro-batches add up to the whole exactly when they partition it
;
; Proof but_last_loses
; The last micro-batch is in no turn of `but last`.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun count (Int) Int)
(declare-const M Int)
(declare-const m Int)
(declare-const n Int)
(assert (and (>= M 1) (<= 1 m) (<= m M) (<= 1 n) (<= n M)))
(assert (= (count 1) 0))
(assert (= (count (+ n 1)) (+ (count n) (ite (< n M) 1 0))))
(assert (= m M))
(assert (distinct (ite (< m M) 1 0) 0))
(check-sat)
