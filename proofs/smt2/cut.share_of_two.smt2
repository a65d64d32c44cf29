; Cutting a copy gives shards; cutting a share does not complete it
;
; Witness share_of_two
; N = 2: device 0 keeps element e and has nothing of item 1.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-sort Element 0)
(declare-fun owner (Element) Int)
(declare-fun before (Int Element) Real)
(declare-const e Element)
(declare-const w Int)
(declare-const N Int)
(define-fun at_owner () Real (before (owner e) e))
(assert (and (>= N 1) (<= 0 w) (< w N) (<= 0 (owner e)) (< (owner e) N)))
(assert (and (= N 2) (= (owner e) 0) (= w 1)))
(assert (and (= (before 0 e) 0.0) (= (before 1 e) 1.0)))
(assert (distinct at_owner 1.0))
(check-sat)
