; Right specs on disjoint axes compose to a right spec
;
; Proof somebody_holds
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-sort Element 0)
(declare-fun holds_a (Int Element) Bool)
(declare-fun holds_b (Int Element) Bool)
(declare-fun updates_a (Int Element) Bool)
(declare-fun updates_b (Int Element) Bool)
(declare-fun source_a (Int Element) Int)
(declare-fun source_b (Int Element) Int)
(declare-fun k_a (Int Int) Real)
(declare-fun some_a (Element) Int)
(declare-fun k_b (Int Int) Real)
(declare-fun some_b (Element) Int)
(declare-const e Element)
(declare-const xa Int)
(declare-const xb Int)
(define-fun right_a () Bool (and
  (forall ((x Int) (w Int)) (= (k_a x w) 1.0))
  (forall ((x Int) (f Element)) (=> (holds_a x f) (updates_a (source_a x f) f)))
  (forall ((f Element)) (holds_a (some_a f) f))))
(define-fun right_b () Bool (and
  (forall ((x Int) (w Int)) (= (k_b x w) 1.0))
  (forall ((x Int) (f Element)) (=> (holds_b x f) (updates_b (source_b x f) f)))
  (forall ((f Element)) (holds_b (some_b f) f))))
(define-fun holds ((x Int) (y Int)) Bool (and (holds_a x e) (holds_b y e)))
(define-fun updates ((x Int) (y Int)) Bool (and (updates_a x e) (updates_b y e)))
(assert (and right_a right_b))
(assert (not (holds (some_a e) (some_b e))))
(check-sat)
