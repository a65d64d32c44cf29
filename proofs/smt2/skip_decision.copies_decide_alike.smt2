; Skipping a step is one decision when it is taken on a copy
;
; Proof copies_decide_alike
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-sort Value 0)
(declare-fun overflow (Value) Bool)
(declare-fun seen (Int) Value)
(declare-fun combined (Int) Bool)
(declare-const N Int)
(declare-const n Int)
(declare-const x Int)
(declare-const y Int)
(assert (and (>= N 1) (<= 0 x) (< x N) (<= 0 y) (< y N) (>= n 0)))
(assert (= (combined 0) false))
(assert (= (combined (+ n 1)) (or (combined n) (overflow (seen n)))))
(assert (= (seen x) (seen y)))
(assert (distinct (overflow (seen x)) (overflow (seen y))))
(check-sat)
