// posterior: three_men1-ldaK2
// names of data: {"V": "n_words", "M": "n_documents", "N": "n", "w": "word", "doc": "document"}
data {
  int n_words;
  int n_documents;
  int n;
  array[n] int<lower=1, upper=n_words> word;
  array[n] int<lower=1, upper=n_documents> document;
}
parameters {
  array[n_documents] simplex[2] topics;
  array[2] simplex[n_words] words;
}
model {
  for (k in 1:2) words[k] ~ dirichlet(rep_vector(1, n_words));
  for (d in 1:n_documents) topics[d] ~ dirichlet(rep_vector(1, 2));
  for (i in 1:n) {
    vector[2] terms;
    for (k in 1:2) terms[k] = log(words[k, word[i]]) + log(topics[document[i], k]);
    target += log_sum_exp(terms);
  }
}
