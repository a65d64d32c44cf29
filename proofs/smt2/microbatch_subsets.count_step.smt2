; Loops over parts of the micro-batches add up to the whole exactly when they partition it
;
; Proof count_step
; `count(n)`: how many of 1..n-1 are not the last; n - 1 of them, as long as n <= M.
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
(assert (= (count n) (- n 1)))
(assert (distinct (count (+ n 1)) (ite (< n M) n (- M 1))))
(check-sat)
