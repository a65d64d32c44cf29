; Each condition is necessary: for some optimizer, breaking it makes parameters wrong
;
; Proof any_injective_optimizer
; Not only for this U: for every optimizer that gives different parameters for different gradients.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const theta Real)
(declare-const omega Real)
(declare-const fed Real)
(declare-const theta2 Real)
(declare-const s_theta Real)
(declare-const s_omega Real)
(declare-const gradient Real)
(declare-const s_theta2 Real)
(define-fun U ((t Real) (o Real) (g Real)) Real (- t o g))
(assert (= s_theta2 (U s_theta s_omega gradient)))
(define-fun updated () Bool (= theta2 (U theta omega fed)))
(declare-sort Value 0)
(declare-sort Moment 0)
(declare-fun V (Value Moment Value) Value)
(declare-const t Value)
(declare-const o Moment)
(declare-const g Value)
(declare-const h Value)
(assert (=> (= (V t o g) (V t o h)) (= g h)))
(assert (= (V t o g) (V t o h)))
(assert (distinct g h))
(check-sat)
