; On an axis of size 1 every operation is the identity
;
; Proof kinds_agree
; A share, a copy and a root are one and the same there.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun k (Int) Real)
(declare-fun sum (Int) Real)
(declare-const N Int)
(declare-const owner Int)
(declare-const root Int)
(declare-const w Int)
(assert (= N 1))
(assert (and (<= 0 owner) (< owner N) (<= 0 root) (< root N) (<= 0 w) (< w N)))
(assert (and (= (sum 0) 0.0) (= (sum 1) (+ (sum 0) (k 0)))))
(assert (not (= (ite (= 0 w) 1.0 0.0) 1.0 (ite (= w root) 1.0 0.0))))
(check-sat)
