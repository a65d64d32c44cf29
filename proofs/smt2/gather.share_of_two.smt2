; Gathering puts pieces together; shares are no pieces
;
; Witness share_of_two
; N = 2: element e, owned by device 0, has all of item 0 and nothing of item 1.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
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
(assert (and (= N 2) (= (owner e) 0) (= w 1)))
(assert (and (= (before 0 e) 0.0) (= (before 1 e) 1.0)))
(assert (distinct (after x e) 1.0))
(check-sat)
