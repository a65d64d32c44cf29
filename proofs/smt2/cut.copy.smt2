; Cutting a copy gives shards; cutting a share does not complete it
;
; Proof copy
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-sort Element 0)
(declare-fun owner (Element) Int)
(declare-fun before (Int Element) Real)
(declare-const e Element)
(declare-const w Int)
(declare-const N Int)
(define-fun at_owner () Real (before (owner e) e))
(assert (and (>= N 1) (<= 0 w) (< w N) (<= 0 (owner e)) (< (owner e) N)))
(assert (forall ((x Int) (f Element)) (= (before x f) 1.0)))
(assert (distinct at_owner 1.0))
(check-sat)
