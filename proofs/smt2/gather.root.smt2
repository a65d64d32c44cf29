; Gathering puts pieces together; shares are no pieces
;
; Proof root
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-sort Element 0)
(declare-fun owner (Element) Int)
(declare-fun before (Int Element) Real)
(declare-const e Element)
(declare-const x Int)
(declare-const w Int)
(declare-const r Int)
(declare-const N Int)
(define-fun after ((y Int) (f Element)) Real (before (owner f) f))
(assert (and (<= 0 x) (< x N) (<= 0 w) (< w N) (<= 0 (owner e)) (< (owner e) N)))
(assert (forall ((y Int) (f Element)) (= (before y f) (ite (= w r) 1.0 0.0))))
(assert (distinct (after x e) (ite (= w r) 1.0 0.0)))
(check-sat)
