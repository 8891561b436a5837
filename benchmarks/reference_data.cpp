// Reads data for the reference models of against_stan.py: apart from them, for JSON takes longer to compile than most.
#include <stan/io/json/json_data.hpp>

#include <fstream>

std::unique_ptr<stan::io::var_context> read_data(const char *file) {
  std::ifstream in(file);
  return std::make_unique<stan::json::json_data>(in);
}
