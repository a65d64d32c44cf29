; Gathering puts pieces together; shares are no pieces
;
; Proof share
; From shares, no scale s makes two elements with different owners right for item w.
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
(declare-const f Element)
(declare-const s Real)
(assert (and (<= 0 (owner f)) (< (owner f) N) (distinct (owner e) (owner f))))
(assert (forall ((y Int) (d Element)) (= (before y d) (ite (= y w) 1.0 0.0))))
(assert (and (= (* s (after x e)) 1.0) (= (* s (after x f)) 1.0)))
(check-sat)
