"""The functions of Stan's library that the lowering makes itself (`passes/to_loops`), for all types of arguments that
the language allows; a definition in `*.stan` goes before. The type checker asks this table whether a call can be
compiled.
"""

INTRINSICS = frozenset(
    """
    abs add append_array append_col append_row bernoulli_logit_rng bernoulli_rng beta_binomial_rng
    beta_neg_binomial_rng beta_proportion_rng beta_rng binomial_rng block categorical_logit_rng categorical_rng
    cauchy_rng chi_square_rng chol2inv cholesky_decompose col cols determinant diag_matrix diagonal dims
    dirichlet_multinomial_rng dirichlet_rng discrete_range_rng divide dot_product double_exponential_rng
    eigenvalues_sym eigenvectors_sym elt_divide elt_multiply exp_mod_normal_rng exponential_rng frechet_rng gamma_rng
    gumbel_rng head hypergeometric_rng int_step inv_chi_square_rng inv_gamma_rng inv_wishart_rng inverse inverse_spd
    lkj_corr_cholesky_rng lkj_corr_rng log_determinant log_determinant_spd logical_negation logistic_rng
    loglogistic_rng lognormal_rng map_rect matrix_exp max mdivide_left mdivide_left_spd mdivide_left_tri_low
    mdivide_right mdivide_right_spd mdivide_right_tri_low min minus multi_normal_cholesky_rng multi_normal_rng
    multi_student_t_cholesky_rng multi_student_t_rng multinomial_logit_rng multinomial_rng multiply
    neg_binomial_2_log_rng neg_binomial_2_rng neg_binomial_rng normal_rng num_elements ordered_logistic_rng
    ordered_probit_rng pareto_rng pareto_type_2_rng plus poisson_log_rng poisson_rng pow qr_thin_Q qr_thin_R
    rayleigh_rng reduce_sum reduce_sum_static rep_array rep_matrix rep_row_vector rep_vector row rows
    scaled_inv_chi_square_rng segment singular_values size skew_double_exponential_rng skew_normal_rng sort_asc
    sort_desc sort_indices_asc sort_indices_desc std_normal_rng student_t_rng sub_col sub_row subtract sum svd_U svd_V
    tail to_array_1d to_int to_matrix to_row_vector to_vector transpose uniform_rng von_mises_rng weibull_rng
    wishart_cholesky_rng wishart_rng yule_simon_rng
""".split()
)

INTERNAL_FUNCTIONS = {"gaussian_dlm_filter": "mmmvmvm"}
"""Functions that only definitions in `*.stan` can call, made by the lowering, too; their arguments, by the codes of
types in the signature table (`m` a matrix, `v` a vector). The result is a real."""
